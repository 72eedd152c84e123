"""Small random checkpoints of every architecture."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from slice_os.exporters.checkpoint import quiet
from slice_os.exporters.graph import sentences

SIZES = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 130,
}


def wordpiece(special):
    tokenizer = Tokenizer(models.WordPiece(unk_token=special["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=list(special.values()), show_progress=False
    )
    return tokenizer, trainer


def unigram(special):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400,
        special_tokens=list(special.values()),
        unk_token=special["unk_token"],
        show_progress=False,
    )
    return tokenizer, trainer


def byte_bpe(special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return tokenizer, trainer


BERT_SPECIAL = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
}  # fmt: skip
ROBERTA_SPECIAL = {
    "cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>",
}  # fmt: skip
# What differs between architectures: special tokens, token types, where positions begin, offsets.
KINDS = {
    "bert": ("Bert", wordpiece, BERT_SPECIAL),
    "mpnet": ("MPNet", wordpiece, ROBERTA_SPECIAL),
    "xlm-roberta": ("XLMRoberta", unigram, ROBERTA_SPECIAL),
    "modernbert": ("ModernBert", byte_bpe, BERT_SPECIAL),
}


def save(folder, kind, seed=0, half=False):
    """Save a small random checkpoint with a tokenizer trained on the spot."""
    import torch
    import transformers

    name, build, special = KINDS[kind]
    tokenizer, trainer = build(special)
    tokenizer.train_from_iterator(sentences(), trainer)
    first, last = special["cls_token"], special["sep_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(one, tokenizer.token_to_id(one)) for one in (first, last)],
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=128, **special
    )
    fast.save_pretrained(folder)
    extra = {"reference_compile": False} if kind == "modernbert" else {}
    with quiet():  # importing some architectures warns
        config_class = getattr(transformers, f"{name}Config")
        model_class = getattr(transformers, f"{name}Model")
    config = config_class(
        **SIZES,
        **extra,
        pad_token_id=fast.pad_token_id,
        cls_token_id=fast.cls_token_id,
        sep_token_id=fast.sep_token_id,
        bos_token_id=fast.cls_token_id,
        eos_token_id=fast.sep_token_id,
    )
    torch.manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():
        # Trained weights are further from zero than new ones; otherwise every vector is alike.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    (model.half() if half else model).save_pretrained(folder)
    return folder


@pytest.fixture
def make():
    return save


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Return checkpoints by kind and seed, made once."""
    made = {}

    def get(kind="bert", seed=0):
        if (kind, seed) not in made:
            made[kind, seed] = save(tmp_path_factory.mktemp(kind), kind, seed)
        return made[kind, seed]

    return get
