"""Small models and data made on the spot, for the labs that train, shard, quantise or serve one.

`gpt.GPT` is a decoder-only transformer in PyTorch, in the form of GPT-2 or of Llama; `text.Stories` writes
text whose entropy is known; `known` holds the sizes of published models. `pretrained.trained()` is a model
that has learnt such text, kept in the user's cache; `outliers.plant_outliers` gives it large activations.
`training.steps` is the loop of a training run that says how far it is. Only `config`, `known`, `text` and
`training` do without PyTorch.
"""
