"""The engine: models of the Llama family, Qwen2 and Qwen3 included, as the CPU lane runs them.

weights    a name or a path -> a model directory (Hugging Face layout)
hub        org/name -> a model directory or a GGUF file, in the hub's cache
hub_files  which of a repository's files make a model
describe   what can be said of a model without loading it
gguf       a GGUF file -> a model directory
config     what a model directory says about the model's shape
rope       rotary embeddings and their scaling rules
cache      the KV cache: layer x head group x position block
model      embedding, layers, head over rows of many requests
sampling   greedy or at random, random numbers keyed by (seed, position, token)
gumbel     a random number for each seed, position and token
shaping    logit bias, penalties, top-k, top-p, min-p
defaults   how a model wants its tokens chosen
tokenizer  text <-> token ids
spelling   token ids -> bytes
grammar    the form of an answer -> what may come next in it
chat       messages -> prompt, by the model's own template

Only cache, model, sampling and shaping need torch; import what you need from its module.
"""
