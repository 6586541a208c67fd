/* Ranks the results of a search: pages whose titles contain words of the query and pages of the guide come first,
   records of the development last. Sphinx calls `Scorer.score` for each result. */
var Scorer = {
  weights: [
    [/^guide\/index$/, -4],
    [/^guide\//, 10],
    [/^(choosing|made\/command|dask|index)$/, 8],
    [/^made\/gallery\//, 2],
    [/^(benchmarks|glossary|file-format|reliability)$/, 0],
    [/^(papers|decisions)\/|^(design|performance-log|changelog)$/, -8],
  ],

  // Words without their ending, where enough is left: "one" is not "on".
  stem: (word) => {
    const stem = word.replace(/(ing|ion|es|ed|e|s|y)$/, "");
    return (stem.length < 4 ? word : stem).slice(0, 7);
  },

  // Words of a text; "scikit-learn" and "one-vs-one" are several.
  words: (text) => text.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) || [],

  // A word begins with a stem, or is a compound that ends with it, as LIBSVM does with SVM.
  matches: (word, stem) => word.startsWith(stem) || (word.endsWith(stem) && word.length <= 2 * stem.length),

  score: ([docname, title, _anchor, _description, score]) => {
    const query = Scorer.words(new URLSearchParams(window.location.search).get("q") || "");
    const name = Scorer.words(title);
    const inTitle = query.filter((word) => name.some((part) => Scorer.matches(part, Scorer.stem(word)))).length;
    const weight = Scorer.weights.find(([pattern]) => pattern.test(docname));
    return score + (query.length ? Math.round((12 * inTitle) / query.length) : 0) + (weight ? weight[1] : 0);
  },

  // Sphinx' own values.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
