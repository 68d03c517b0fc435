# how: asks for more memory than the machine has, in one piece and in many
# exercise: basics.diffuse
# earns: 0
# slow: yes
# says: memory
# limits: 40 12
def diffuse(rod, out, steps):
    kept = [cuda.device_array(1 << 34, np.float32) for _ in range(64)]
    for each in kept:
        one_step[1, 32](each, out)
