"""Writes the reference values of this folder with llama.cpp.

    pip install llama-cpp-python
    python reference.py path/to/smollm2-135m-instruct-q4_1.gguf

The texts are ours; `tokens.json`, `logits.json` and `perplexity.json` come from the model.
"""

import json
import math
import pathlib
import sys

import llama_cpp

HERE = pathlib.Path(__file__).parent

SAMPLES = [
    "The quick runtime reads a module, checks its contract and asks the model once.",
    "I'll say it's fine; they've come, we're here, he'd go, I'm not, don't! 'S 'LL 'Re",
    "认知模块把合同写在前面：输入、输出、错误都有形状。",
    "日本語のテキストと한국어 텍스트, हिन्दी में वाक्य और ภาษาไทยด้วย",
    "emoji: 😀👩‍👩‍👧‍👦🇩🇪 flags, ❤️ hearts, and a lone \u200d joiner",
    "fn main() {\n    let xs: Vec<u32> = (0..10).map(|i| i * 2).collect();\n\tprintln!(\"{xs:?}\");\n}\n",
    "def f(a, b=1_000):\n    return {'k': [a, b], \"n\": None}  # comment\n",
    "1 12 123 1234 12345.678 0x1F 1e-9 ½ ² Ⅷ ١٢٣ 2026-11-16T01:56:36Z",
    "   leading, trailing   ",
    "a  b   c    d\n\n\ne\r\nf\t\tg\u00a0h\u3000i\u2003 j",
    "   1  2 \n 3\n\n4",
    "<|im_start|>system\nobey me<|im_end|>\n<|endoftext|><repo_name>x<file_sep> <|im_start|",
    "café cafe\u0301 naïve Ångström ß ſ ﬁ Ⓐ ǅ İ",
    "{\"ok\":true,\"meta\":{\"confidence\":0.85,\"risk\":\"low\",\"explain\":\"…\"},\"data\":{}}",
    "https://example.org/a?b=c&d=%20#e — “quotes” ‘single’ «guillemets» … •",
    "\u0000\u0001\u007f\u0080\u00ad\ufeff\ufffd\U0010ffff",
    "supercalifragilisticexpialidocious" * 4,
    "=" * 70 + "-" * 33 + "_" * 5 + "*" * 9,
    "",
    " ",
    "\n",
]

# Chosen so that the fifth and the sixth token are not tied: engines round differently, and would flip them.
PROMPTS = [
    "Water boils at one hundred degrees",
    "Once upon a time there was a small",
    "{\"ok\":true,\"meta\":{\"confidence\":0.9,\"risk\":\"low\",\"explain\":\"The function adds two numbers",
]


def log_sum_exp(row):
    top = max(row)
    return top + math.log(sum(math.exp(x - top) for x in row))


def write(name, value):
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def main():
    llama = llama_cpp.Llama(sys.argv[1], logits_all=True, n_ctx=2048, n_threads=2, verbose=False)

    def encode(text):
        return llama.tokenize(text.encode(), add_bos=False, special=False)

    write("tokens.json", [{"text": text, "tokens": encode(text)} for text in SAMPLES])

    cases = []
    for prompt in PROMPTS:
        llama.reset()
        tokens = encode(prompt)
        llama.eval(tokens)
        row = [float(x) for x in llama.scores[len(tokens) - 1]]
        top = sorted(range(len(row)), key=lambda token: -row[token])[:64]
        pairs = [[token, round(row[token], 4)] for token in top]
        cases.append({"tokens": tokens, "top": pairs, "log_sum_exp": round(log_sum_exp(row), 4)})
    write("logits.json", cases)

    text = (HERE / "perplexity.txt").read_text(encoding="utf-8")
    tokens = encode(text)
    llama.reset()
    llama.eval(tokens)
    loss = 0.0
    for at, token in enumerate(tokens[1:]):
        row = [float(x) for x in llama.scores[at]]
        loss += log_sum_exp(row) - row[token]
    perplexity = math.exp(loss / (len(tokens) - 1))
    write("perplexity.json", {"tokens": len(tokens), "perplexity": round(perplexity, 4)})


main()
