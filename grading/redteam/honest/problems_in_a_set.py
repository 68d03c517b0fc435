# how: collects the problems of a configuration in a set, which the learner's own check takes for a sorted list
# exercise: shard.config
def config(settings, gpus, tensor, pipeline):
    found = the_labs_own(settings, gpus, tensor, pipeline)
    return {**found, "problems": frozenset(found["problems"])}
