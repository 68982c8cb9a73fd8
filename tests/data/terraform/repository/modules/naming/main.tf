variable "base" { type = string }
variable "words" {
  type = set(string)
}
locals { sorted = sort(tolist(var.words)) }
output "base" { value = trimsuffix(var.base, ".") }
output "first" {
  value = local.sorted[0]
}
