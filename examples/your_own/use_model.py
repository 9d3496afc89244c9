# use_model.py
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("my-trained-model")
model = AutoModelForCausalLM.from_pretrained("my-trained-model")
prompt = tokenizer.apply_chat_template([{"role": "user", "content": "2 + 3 = ?"}], tokenize=False,
                                       add_generation_prompt=True)
tokens = tokenizer(prompt, return_tensors="pt")
reply = model.generate(**tokens, max_new_tokens=8, do_sample=False)
print(tokenizer.decode(reply[0, tokens["input_ids"].shape[1]:]))
