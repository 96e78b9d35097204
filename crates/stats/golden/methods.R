# Golden values of the methods, by R's own stats package.
#
#     apt-get install r-base-core && Rscript methods.R > methods_r.json

set.seed(3)
list_of <- function(values) paste0("[", paste(sprintf("%.17g", values), collapse = ", "), "]")
entry <- function(...) {
  parts <- list(...)
  fields <- mapply(function(name, value)
    sprintf('"%s": %s', name, if (length(value) > 1) list_of(value) else sprintf("%.17g", value)),
    names(parts), parts)
  paste0("{", paste(fields, collapse = ", "), "}")
}
numbers <- function(n, low, high) round(runif(n, low, high), 5)

signed_rank <- sapply(c(6, 7, 10, 20, 45), function(n) {
  values <- numbers(n, -0.4, 1)
  test <- wilcox.test(values, conf.int = TRUE, exact = TRUE)
  entry(values = values, estimate = test$estimate, low = test$conf.int[1], high = test$conf.int[2])
})
shifts <- sapply(list(c(4, 4), c(6, 9), c(15, 15), c(30, 40)), function(sizes) {
  from <- numbers(sizes[1], 0, 1); to <- numbers(sizes[2], 0.2, 1.6)
  test <- wilcox.test(to, from, conf.int = TRUE, exact = TRUE)
  entry(from = from, to = to, p = test$p.value, estimate = test$estimate,
        low = test$conf.int[1], high = test$conf.int[2])
})
holm <- sapply(list(c(0.01, 0.04, 0.03, 0.005), c(0.5, 0.9, 0.02), runif(12)), function(p)
  entry(p = p, adjusted = p.adjust(p, "holm")))
kendall <- sapply(c(5, 9, 30), function(n) {
  y <- numbers(n, 0, 1)
  test <- cor.test(seq_len(n), y, method = "kendall", exact = TRUE)
  entry(y = y, tau = test$estimate, p = test$p.value)
})
welch <- sapply(list(c(3, 5), c(12, 8)), function(sizes) {
  from <- numbers(sizes[1], 1, 2); to <- numbers(sizes[2], 1.2, 4)
  test <- t.test(log(to), log(from))
  entry(from = from, to = to, p = test$p.value, freedom = test$parameter,
        low = exp(test$conf.int[1]), high = exp(test$conf.int[2]))
})
lists <- list(signed_rank = signed_rank, shifts = shifts, holm = holm, kendall = kendall, welch = welch)
cat("{", paste(mapply(function(name, entries)
  sprintf('"%s": [\n%s\n]', name, paste(entries, collapse = ",\n")), names(lists), lists), collapse = ",\n"),
  "}\n", sep = "")
