"""The sizes of published language models, each with where they are stated."""

from __future__ import annotations

from dataclasses import dataclass

from .config import Config


@dataclass(frozen=True)
class Known:
    """A published model. `stated` is the parameter count that its makers state, rounded as they do; with
    several `experts` a token uses `used_experts` of each layer's feed-forward blocks, `config` describes one.
    """

    name: str
    config: Config
    stated: float
    source: str
    experts: int = 1
    used_experts: int = 1


def _gpt(width: int, layers: int, heads: int, context: int = 1024) -> Config:
    return Config(50257, context, width, layers, heads)


def _llama(
    width: int, layers: int, heads: int, kv_heads: int, hidden: int, vocabulary: int, context: int
) -> Config:
    return Config(
        vocabulary,
        context,
        width,
        layers,
        heads,
        kv_heads,
        hidden,
        positions="rotary",
        norm="rms",
        gated=True,
        bias=False,
        tied=False,
    )


_GPT_2 = "OpenAI, gpt-2 repository, hparams.json of the models 124M and 1558M, 2019"
_GPT_3 = "T. Brown et al., arXiv:2005.14165, Table 2.1"
_LLAMA_2 = "H. Touvron et al., arXiv:2307.09288, and the released params.json"
_LLAMA_3 = "A. Grattafiori et al., arXiv:2407.21783, Table 3"
_MIXTRAL = "A. Jiang et al., arXiv:2401.04088, Table 1"

MODELS: tuple[Known, ...] = (
    Known("GPT-2", _gpt(768, 12, 12), 124e6, _GPT_2),
    Known("GPT-2 XL", _gpt(1600, 48, 25), 1558e6, _GPT_2),
    Known("GPT-3", _gpt(12288, 96, 96, 2048), 175e9, _GPT_3),
    Known("Llama 2 7B", _llama(4096, 32, 32, 32, 11008, 32000, 4096), 7e9, _LLAMA_2),
    Known("Llama 2 70B", _llama(8192, 80, 64, 8, 28672, 32000, 4096), 70e9, _LLAMA_2),
    Known("Llama 3 8B", _llama(4096, 32, 32, 8, 14336, 128_256, 8192), 8e9, _LLAMA_3),
    Known("Llama 3 70B", _llama(8192, 80, 64, 8, 28672, 128_256, 8192), 70e9, _LLAMA_3),
    Known("Llama 3 405B", _llama(16384, 126, 128, 8, 53248, 128_256, 8192), 405e9, _LLAMA_3),
    Known("Mixtral 8x7B", _llama(4096, 32, 32, 8, 14336, 32000, 32768), 47e9, _MIXTRAL, 8, 2),
)


def find(name: str) -> Known:
    """The model of that name. Raises LookupError, which lists the names."""
    for model in MODELS:
        if model.name == name:
            return model
    raise LookupError(f"no model is called {name!r}; there are {', '.join(m.name for m in MODELS)}")
