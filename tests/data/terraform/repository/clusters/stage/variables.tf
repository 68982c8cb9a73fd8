variable "teams" {
  description = "by name"
  type = map(object({
    topics = list(string)
    groups = optional(list(string), [])
    host   = optional(string)
    access = optional(object({ reader = optional(bool, false), legacy = optional(number, 0) }), {})
  }))
}

variable "prefix" {
  type    = string
  default = "none"
}

variable "strict" {
  default = false
}

variable "replicas" {
  type     = number
  default  = 1
  nullable = false
}
