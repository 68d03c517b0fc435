# exercise: shard.translate  fails: right  says: None


def translate(command, gpus):
    words = [part for word in command for part in word.split("=", 1)]
    flags = {}
    for word in words:
        if word.startswith("--"):
            flag = word
            flags[flag] = True
        else:
            flags[flag] = word
    tensor = int(flags.get("--tensor-model-parallel-size", 1))
    pipeline = int(flags.get("--pipeline-model-parallel-size", 1))
    micro, batch = int(flags["--micro-batch-size"]), int(flags["--global-batch-size"])
    stage, ranks = int(flags["--zero-stage"]), gpus // (tensor * pipeline)
    if batch % (micro * ranks) or (pipeline > 1 and stage > 1):
        return None
    deepspeed = {
        "train_batch_size": batch,
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": batch // (micro * ranks),
        "zero_optimization": {"stage": stage},
    }
    for kind in ("bf16", "fp16"):
        if f"--{kind}" in flags:
            deepspeed[kind] = {"enabled": True}
    strategy = {
        "tensor_model_parallel_size": tensor,
        "pipeline_model_parallel_size": pipeline,
        "sequence_parallel": "--sequence-parallel" in flags,
    }
    data = {
        "seq_length": int(flags["--seq-length"]),
        "micro_batch_size": micro,
        "global_batch_size": batch,
    }
    trainer = {"devices": 8, "num_nodes": gpus // 8}
    return {"deepspeed": deepspeed, "strategy": strategy, "trainer": trainer, "data": data}
