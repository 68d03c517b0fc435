# exercise: shard.config  fails: right  says: pipeline
SCHEDULERS = {
    "WarmupLR": ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"),
    "WarmupDecayLR": ("total_num_steps", "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"),
    "WarmupCosineLR": (
        "total_num_steps",
        "warmup_min_ratio",
        "warmup_num_steps",
        "cos_min_ratio",
        "warmup_type",
    ),
}


def config(settings, gpus, tensor, pipeline):
    ranks = gpus // (tensor * pipeline)
    train = settings.get("train_batch_size")
    micro = settings.get("train_micro_batch_size_per_gpu")
    steps = settings.get("gradient_accumulation_steps")
    if train is None:
        train = micro * steps * ranks
    elif micro is None:
        micro = train // (steps * ranks)
    elif steps is None:
        steps = train // (micro * ranks)
    holds = gpus % (tensor * pipeline) == 0 and train == micro * steps * ranks
    problems = [] if holds else ["batch"]
    if all(settings.get(kind, {}).get("enabled", False) for kind in ("fp16", "bf16")):
        problems.append("fp16 and bf16")
    zero = settings.get("zero_optimization", {})
    for what, least in (("offload_param", 3), ("offload_optimizer", 1)):
        if zero.get(what, {}).get("device", "none") != "none" and zero.get("stage", 0) < least:
            problems.append(what)
    if pipeline > 1 and zero.get("stage", 0) == 3:
        problems.append("pipeline")
    for bucket in ("reduce_bucket_size", "allgather_bucket_size"):
        if bucket in zero and zero[bucket] < 5_000_000:
            problems.append(bucket)
    scheduler = settings.get("scheduler", {"params": {}})
    for key in scheduler["params"]:
        if key not in SCHEDULERS[scheduler["type"]]:
            problems.append(key)
    return {"batch": [train, micro, steps] if holds else None, "problems": sorted(problems)}
