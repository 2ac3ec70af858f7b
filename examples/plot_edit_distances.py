"""
Words by edit distance
======================

Data without features can be mapped as well: ``metric="precomputed"`` takes distances, here the edit distance
(Levenshtein distance) between the words for one to ten in sixteen European languages.
"""

# %%
# The words, without accents.

import matplotlib.pyplot as plt
import numpy as np

from laptsne import LaptSNE

WORDS = """
English one two three four five six seven eight nine ten
German eins zwei drei vier funf sechs sieben acht neun zehn
Dutch een twee drie vier vijf zes zeven acht negen tien
Frisian ien twa trije fjouwer fiif seis san acht njoggen tsien
Danish en to tre fire fem seks syv otte ni ti
Swedish ett tva tre fyra fem sex sju atta nio tio
Icelandic einn tveir thrir fjorir fimm sex sjo atta niu tiu
Italian uno due tre quattro cinque sei sette otto nove dieci
Spanish uno dos tres cuatro cinco seis siete ocho nueve diez
Portuguese um dois tres quatro cinco seis sete oito nove dez
French un deux trois quatre cinq six sept huit neuf dix
Catalan un dos tres quatre cinc sis set vuit nou deu
Romanian unu doi trei patru cinci sase sapte opt noua zece
Polish jeden dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec
Czech jeden dva tri ctyri pet sest sedm osm devet deset
Croatian jedan dva tri cetiri pet sest sedam osam devet deset
"""
rows = [line.split() for line in WORDS.strip().splitlines()]
meaning = {word: number for _, *numerals in rows for number, word in enumerate(numerals, start=1)}
words = list(meaning)  # words shared by several languages occur once
numbers = np.array(list(meaning.values()))


def edit_distance(a, b):
    """Minimum number of insertions, deletions and substitutions, divided by the length of the longer word."""
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b, start=1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (letter != other)))
        last = row
    return last[-1] / max(len(a), len(b))


distances = np.array([[edit_distance(a, b) for b in words] for a in words])

# %%
# There are few words, and the groups of related ones are small, so the perplexity is small as well. Colours show the
# numbers, which the map does not use. Related words are close to each other: *quattro, quatro, quatre, cuatro, patru*.

model = LaptSNE(metric="precomputed", perplexity=4, random_state=0).fit(distances)
print(f"words: {len(words)}, clusters with evidence: {model.n_clusters_}")

figure, ax = plt.subplots(figsize=(10, 10), layout="constrained")
for word, number, (x, y) in zip(words, numbers, model.embedding_, strict=True):
    ax.text(x, y, word, color=plt.cm.tab10(number - 1), fontsize=11, ha="center", va="center")
low, high = model.embedding_.min(axis=0) - 2, model.embedding_.max(axis=0) + 2
ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), title="One to ten in sixteen languages, coloured by number")
ax.axis("off")
