"""Answers questions about a model file with llama.cpp: one JSON object in, one out.

    python answer.py WEIGHTS < questions

`texts` become tokens. After each list in `prompts`, the likeliest tokens with the logarithms of their probabilities are wanted,
`top` of them, and how far llama.cpp is from itself: it rounds differently when it reads a prompt token by token, and `own` is the
divergence between both. `text` is a list of tokens whose perplexity is wanted, from the third on.
"""

import json
import math
import sys

import numpy

import llama


def main():
    questions = json.load(sys.stdin)
    # One thread: several wait for each other in circles, which takes forever where others compute as well.
    model = llama.Llama(sys.argv[1], 1)
    answer = {"tokens": [model.encode(text) for text in questions.get("texts", [])], "prompts": [], "own": []}
    for prompt in questions.get("prompts", []):
        model.reset()
        model.feed(prompt)
        row = llama.log_probabilities(model.row())
        best = numpy.argsort(-row)[: questions["top"]]
        answer["prompts"].append([[int(token), float(row[token])] for token in best])
        model.reset()
        for token in prompt:
            model.feed([token])
        other = llama.log_probabilities(model.row())
        answer["own"].append(float((numpy.exp(row) * (row - other)).sum()))
    tokens = questions.get("text", [])
    if tokens:
        model.reset()
        model.feed(tokens, every=True)
        rows = (llama.log_probabilities(model.row(at)) for at in range(1, len(tokens) - 1))
        loss = -sum(row[token] for row, token in zip(rows, tokens[2:]))
        answer["perplexity"] = math.exp(loss / (len(tokens) - 2))
    model.close()
    json.dump(answer, sys.stdout)


main()
