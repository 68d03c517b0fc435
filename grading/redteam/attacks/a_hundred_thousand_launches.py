# how: more launches than anybody can replay
# exercise: basics.diffuse
# earns: 0
# slow: yes
# says: launches more than 2,000 kernels
# limits: 40 12
def diffuse(rod, out, steps):
    launch = one_step[1, 32]
    for _ in range(3000):
        launch(rod, out)
