"""Answers questions about a model file with llama.cpp: one JSON object in, one out.

    python answer.py WEIGHTS < questions

`texts` become tokens. After each list in `prompts`, the likeliest tokens with the logarithms of their probabilities are wanted,
`top` of them. `text` is a list of tokens whose perplexity is wanted.
"""

import json
import math
import sys

import numpy

import llama


def main():
    questions = json.load(sys.stdin)
    model = llama.Llama(sys.argv[1], 2)
    answer = {"tokens": [model.encode(text) for text in questions.get("texts", [])], "prompts": []}
    for prompt in questions.get("prompts", []):
        model.reset()
        model.feed(prompt)
        row = llama.log_probabilities(model.row())
        best = numpy.argsort(-row)[: questions["top"]]
        answer["prompts"].append([[int(token), float(row[token])] for token in best])
    tokens = questions.get("text", [])
    if tokens:
        model.reset()
        model.feed(tokens, every=True)
        rows = (llama.log_probabilities(model.row(at)) for at in range(len(tokens) - 1))
        loss = -sum(row[token] for row, token in zip(rows, tokens[1:]))
        answer["perplexity"] = math.exp(loss / (len(tokens) - 1))
    model.close()
    json.dump(answer, sys.stdout)


main()
