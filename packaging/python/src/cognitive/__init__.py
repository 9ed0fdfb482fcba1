"""The API of the specification, as it is printed there: `from cognitive import CognitiveRuntime`."""
