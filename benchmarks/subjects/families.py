"""One small network of each family that people export, with seeded random weights: two layers, or
one block at each scale, and widths of which the real ones are multiples. Needs torch and
transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import transformers
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache
from transformers.pytorch_utils import Conv1D

from ..export import Adapter, Exported, pictures, settle
from .unet import UNet

WORDS = 1000  # of a vocabulary
LENGTH = 64
WIDTH, HEADS, LAYERS = 256, 4, 2
SIDE = 224
CLASSES = 100
BATCH, TOKENS = {0: "batch"}, {0: "batch", 1: "length"}


def seed(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """Weights that keep the scale of what passes; norms away from the identity; for inference."""
    with torch.no_grad():
        for part in network.modules():
            for name, weight in part.named_parameters(recurse=False):
                if isinstance(part, nn.Embedding):
                    weight.normal_(0.0, 0.5, generator=generator)
                elif isinstance(part, Conv1D) and name == "weight":  # inputs by outputs
                    weight.normal_(0.0, (1.5 / len(weight)) ** 0.5, generator=generator)
                elif isinstance(part, (nn.Linear, nn.Conv1d, nn.Conv2d)) and name == "weight":
                    fan = weight[0].numel()
                    weight.normal_(0.0, (1.5 / fan) ** 0.5, generator=generator)
                elif name == "bias":
                    weight.normal_(0.0, 0.05, generator=generator)
                elif weight.ndim == 1:  # the factors of norms and of whole branches
                    weight.uniform_(0.7, 1.1, generator=generator)
    return network.eval()


def _ids(generator: torch.Generator, batch: int, length: int = LENGTH) -> Tensor:
    return torch.randint(3, WORDS, (batch, length), generator=generator)


def _mask(batch: int) -> Tensor:
    """All words of the first text are seen, and but for its last quarter of each other one."""
    mask = torch.ones(batch, LENGTH, dtype=torch.int64)
    mask[1:, -LENGTH // 4 :] = 0
    return mask


def _text(
    network: nn.Module,
    generator: torch.Generator,
    batch: int,
    call: Callable[..., object],
    outputs: tuple[str, ...],
) -> Exported:
    """A network of words and a mask."""
    inputs = {"input_ids": _ids(generator, batch), "attention_mask": _mask(batch)}
    axes = dict.fromkeys(inputs, TOKENS)
    return Exported(Adapter(seed(network, generator), call), inputs, outputs, axes)


def _image(
    network: nn.Module,
    generator: torch.Generator,
    batch: int,
    call: Callable[..., object],
    outputs: tuple[str, ...] = ("logits",),
) -> Exported:
    """A network of pictures; batch norms have statistics of random ones."""
    adapted = Adapter(seed(network, generator), call)
    inputs = {"pixel_values": pictures(batch, generator)}
    return Exported(settle(adapted, generator), inputs, outputs, {"pixel_values": BATCH})


def _logits(network: nn.Module, x: Tensor) -> Tensor:
    return network(x).logits


def bert(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.BertConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
    )

    def call(net: nn.Module, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        result = net(input_ids=ids, attention_mask=mask)
        return result.last_hidden_state, result.pooler_output

    outputs = ("last_hidden_state", "pooler_output")
    return _text(transformers.BertModel(config), generator, batch, call, outputs)


def distilbert(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.DistilBertConfig(
        vocab_size=WORDS, dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, hidden_dim=4 * WIDTH
    )

    def call(net: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
        return net(input_ids=ids, attention_mask=mask).logits

    network = transformers.DistilBertForSequenceClassification(config)
    return _text(network, generator, batch, call, ("logits",))


def t5_encoder(generator: torch.Generator, batch: int) -> Exported:
    def call(net: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
        return net(input_ids=ids, attention_mask=mask).last_hidden_state

    network = transformers.T5EncoderModel(_t5_config())
    return _text(network, generator, batch, call, ("last_hidden_state",))


def _t5_config() -> transformers.T5Config:
    return transformers.T5Config(
        vocab_size=WORDS,
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=4 * WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
    )


def t5_decoder(generator: torch.Generator, batch: int) -> Exported:
    def call(net: nn.Module, ids: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        found = net(
            decoder_input_ids=ids, encoder_outputs=(states,), attention_mask=mask, use_cache=False
        )
        return found.logits

    network = seed(transformers.T5ForConditionalGeneration(_t5_config()), generator)
    inputs = {
        "decoder_input_ids": _ids(generator, batch, LENGTH // 2),
        "encoder_hidden_states": torch.randn(batch, LENGTH, WIDTH, generator=generator),
        "encoder_attention_mask": _mask(batch),
    }
    states = {0: "batch", 1: "source"}
    axes = dict(zip(inputs, (TOKENS, states, states), strict=True))
    return Exported(Adapter(network, call), inputs, ("logits",), axes)


def _states(cache: DynamicCache) -> Iterator[Tensor]:
    for layer in cache.layers:
        yield layer.keys
        yield layer.values


_CACHE = tuple(f"{kind}.{layer}" for layer in range(LAYERS) for kind in ("key", "value"))


def _prefill(network: nn.Module, generator: torch.Generator, batch: int) -> Exported:
    """A decoder that reads a text and keeps what it saw."""

    def call(net: nn.Module, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        result = net(input_ids=ids, attention_mask=mask, use_cache=True)
        return result.logits, *_states(result.past_key_values)

    outputs = ("logits", *(f"present.{name}" for name in _CACHE))
    return _text(network, generator, batch, call, outputs)


def _decode(
    network: nn.Module, generator: torch.Generator, batch: int, heads: int, width: int
) -> Exported:
    """A decoder that has seen a text and reads one word more."""
    config = network.config

    def call(net: nn.Module, ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = DynamicCache(config=config)
        for layer in range(LAYERS):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        position = torch.full((1, 1), past[0].shape[2], dtype=torch.int64)
        result = net(input_ids=ids, past_key_values=cache, position_ids=position, use_cache=True)
        return result.logits, *_states(result.past_key_values)

    shape = (batch, heads, LENGTH, width)
    past = {f"past.{name}": torch.randn(shape, generator=generator) for name in _CACHE}
    inputs = {"input_ids": _ids(generator, batch, 1), **past}
    outputs = ("logits", *(f"present.{name}" for name in _CACHE))
    axes = {"input_ids": BATCH, **{key: {0: "batch", 2: "past"} for key in past}}
    return Exported(Adapter(seed(network, generator), call), inputs, outputs, axes)


def _gpt2() -> nn.Module:
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=512
    )
    return transformers.GPT2LMHeadModel(config)


def gpt2_prefill(generator: torch.Generator, batch: int) -> Exported:
    return _prefill(_gpt2(), generator, batch)


def gpt2_decode(generator: torch.Generator, batch: int) -> Exported:
    return _decode(_gpt2(), generator, batch, HEADS, WIDTH // HEADS)


def _llama() -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS // 2,
        max_position_embeddings=512,
    )
    return transformers.LlamaForCausalLM(config)


def llama_prefill(generator: torch.Generator, batch: int) -> Exported:
    return _prefill(_llama(), generator, batch)


def llama_decode(generator: torch.Generator, batch: int) -> Exported:
    return _decode(_llama(), generator, batch, HEADS // 2, WIDTH // HEADS)


def _whisper_config() -> transformers.WhisperConfig:
    return transformers.WhisperConfig(
        vocab_size=WORDS,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
        max_source_positions=200,
        max_target_positions=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        begin_suppress_tokens=None,
    )


def whisper_encoder(generator: torch.Generator, batch: int) -> Exported:
    network = transformers.WhisperModel(_whisper_config()).encoder
    inputs = {"input_features": torch.randn(batch, 80, 400, generator=generator)}
    adapted = Adapter(seed(network, generator), lambda net, x: net(x).last_hidden_state)
    return Exported(adapted, inputs, ("last_hidden_state",), {"input_features": BATCH})


def whisper_decoder(generator: torch.Generator, batch: int) -> Exported:
    """With the cross attention of its encoder's states, and without a cache."""

    def call(net: nn.Module, ids: Tensor, states: Tensor) -> Tensor:
        found = net(
            decoder_input_ids=ids,
            decoder_attention_mask=torch.ones_like(ids),
            encoder_outputs=(states,),
            use_cache=False,
        )
        return found.logits

    network = seed(transformers.WhisperForConditionalGeneration(_whisper_config()), generator)
    inputs = {
        "decoder_input_ids": _ids(generator, batch, LENGTH // 2),
        "encoder_hidden_states": torch.randn(batch, 200, WIDTH, generator=generator),
    }
    axes = dict(zip(inputs, (TOKENS, BATCH), strict=True))
    return Exported(Adapter(network, call), inputs, ("logits",), axes)


def _clip_config() -> transformers.CLIPConfig:
    common = {
        "hidden_size": WIDTH,
        "intermediate_size": 4 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
    }
    words = {"vocab_size": WORDS, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
    text = {**common, **words, "max_position_embeddings": 512}
    vision = {**common, "image_size": SIDE, "patch_size": 32}
    return transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=WIDTH)


def clip_text(generator: torch.Generator, batch: int) -> Exported:
    def call(net: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
        return net(input_ids=ids, attention_mask=mask).text_embeds

    network = transformers.CLIPTextModelWithProjection(_clip_config().text_config)
    made = _text(network, generator, batch, call, ("text_embeds",))
    made.inputs["input_ids"][:, LENGTH // 2] = 2  # where the text ends
    return made


def clip_vision(generator: torch.Generator, batch: int) -> Exported:
    network = transformers.CLIPVisionModelWithProjection(_clip_config().vision_config)
    return _image(network, generator, batch, lambda net, x: net(x).image_embeds, ("image_embeds",))


def vit(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.ViTConfig(
        num_labels=CLASSES,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
    )
    return _image(transformers.ViTForImageClassification(config), generator, batch, _logits)


def swin(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.SwinConfig(
        num_labels=CLASSES, embed_dim=48, depths=[2, 2], num_heads=[2, 4], image_size=SIDE
    )
    return _image(transformers.SwinForImageClassification(config), generator, batch, _logits)


def convnext(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.ConvNextConfig(
        num_labels=CLASSES, hidden_sizes=[48, 96, 192, 384], depths=[1, 1, 1, 1]
    )
    return _image(transformers.ConvNextForImageClassification(config), generator, batch, _logits)


def _resnet_config() -> transformers.ResNetConfig:
    return transformers.ResNetConfig(
        num_labels=CLASSES,
        embedding_size=32,
        hidden_sizes=[64, 128, 256, 512],
        depths=[1, 1, 1, 1],
        out_features=["stage4"],
    )


def resnet(generator: torch.Generator, batch: int) -> Exported:
    network = transformers.ResNetForImageClassification(_resnet_config())
    return _image(network, generator, batch, _logits)


def mobilenetv2(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.MobileNetV2Config(
        num_labels=CLASSES, depth_multiplier=0.5, image_size=SIDE
    )
    return _image(transformers.MobileNetV2ForImageClassification(config), generator, batch, _logits)


def segformer(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.SegformerConfig(
        num_labels=20, depths=[1, 1, 1, 1], decoder_hidden_size=128, image_size=SIDE
    )
    network = transformers.SegformerForSemanticSegmentation(config)
    return _image(network, generator, batch, _logits)


def detr(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=_resnet_config(),
        num_labels=20,
        num_queries=50,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=4 * WIDTH,
        decoder_ffn_dim=4 * WIDTH,
    )

    def call(net: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        result = net(x)
        return result.logits, result.pred_boxes

    network = transformers.DetrForObjectDetection(config)
    return _image(network, generator, batch, call, ("logits", "pred_boxes"))


def unet(generator: torch.Generator, batch: int) -> Exported:
    """What takes noise off latent images, told by how much and by which text."""
    inputs = {
        "sample": torch.randn(batch, 4, 32, 32, generator=generator),
        "timestep": torch.randint(0, 1000, (batch,), generator=generator),
        "encoder_hidden_states": torch.randn(batch, 16, 64, generator=generator),
    }
    network = seed(UNet(channels=64, text=64), generator)
    adapted = Adapter(network, lambda net, *tensors: net(*tensors))
    return Exported(adapted, inputs, ("noise",), dict.fromkeys(inputs, BATCH))


def wav2vec2(generator: torch.Generator, batch: int) -> Exported:
    config = transformers.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        conv_dim=(128,) * 7,
    )
    network = seed(transformers.Wav2Vec2ForCTC(config), generator)
    inputs = {"input_values": torch.randn(batch, 16_000, generator=generator)}
    axes = {"input_values": {0: "batch", 1: "samples"}}
    return Exported(Adapter(network, _logits), inputs, ("logits",), axes)


FAMILIES: dict[str, Callable[[torch.Generator, int], Exported]] = {
    make.__name__: make
    for make in (
        bert,
        distilbert,
        t5_encoder,
        t5_decoder,
        gpt2_prefill,
        gpt2_decode,
        llama_prefill,
        llama_decode,
        whisper_encoder,
        whisper_decoder,
        clip_text,
        clip_vision,
        vit,
        swin,
        convnext,
        resnet,
        mobilenetv2,
        segformer,
        detr,
        unet,
        wav2vec2,
    )
}
