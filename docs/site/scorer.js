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

  stem: (word) => word.replace(/(ing|ion|es|ed|e|s|y)$/, "").slice(0, 7),

  score: ([docname, title, _anchor, _description, score]) => {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) || [];
    const name = title.toLowerCase();
    const inTitle = words.filter((word) => name.includes(Scorer.stem(word))).length;
    const weight = Scorer.weights.find(([pattern]) => pattern.test(docname));
    return score + (words.length ? Math.round((12 * inTitle) / words.length) : 0) + (weight ? weight[1] : 0);
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
