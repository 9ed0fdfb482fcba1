"""One run, as the command line would do it: `python hello.py`."""

import cogn

envelope = cogn.run("text-classifier", {"text": "What a wonderful day, everything went well!"})
print(envelope.data["sentiment"] if envelope.data else envelope.error)
