"""Runs three modules with the client that openapi-python-client has generated; prints what their types led to as JSON.

Usage: typed.py http://127.0.0.1:PORT
Needs the generated package `cogn_client` in the current folder. Checked by mypy before it is run.
"""

import json
import sys

from cogn_client import Client
from cogn_client.api.catalog import list_modules
from cogn_client.api.modules import run_code_reviewer, run_summarizer, run_text_classifier
from cogn_client.models import (
    CodeReviewerInput,
    CustomValue,
    ModuleList,
    SummarizerInput,
    TextClassifierInput,
)

client = Client(base_url=sys.argv[1], httpx_args={"trust_env": False})
seen: dict[str, object] = {}

answer = run_text_classifier.sync(client=client, body=TextClassifierInput(text="It rains."))
assert answer is not None
if answer.ok:
    label: str = answer.data.label
    seen["label"] = label
    seen["sentiment"] = answer.data.sentiment.value
    seen["risk"] = answer.meta.risk.value

review = run_code_reviewer.sync(client=client, body=CodeReviewerInput(code="x = 1"))
assert review is not None
if review.ok:
    kinds = [issue.type_ for issue in review.data.issues]
    seen["kinds"] = [kind.custom if isinstance(kind, CustomValue) else kind.value for kind in kinds]

# The model gives what the contract of this module does not allow.
failed = run_summarizer.sync(client=client, body=SummarizerInput(text="It rains."))
assert failed is not None
if not failed.ok:
    code: str = failed.error.code
    seen["code"] = code

known = list_modules.sync(client=client)
assert isinstance(known, ModuleList)
seen["modules"] = [module.name for module in known.modules]
print(json.dumps(seen))
