locals {
  environment = basename(local.home)
  home        = "clusters/stage"
  base        = "${var.prefix}.${local.environment}"
  # every pair of a team and a topic
  grants = flatten([
    for name, team in var.teams : [
      for topic in team.topics : {
        key       = "${name}/${topic}"
        principal = "User:${name}"
        topic     = "${local.base}.${topic}"
        host      = team.host == null ? "*" : team.host
        (local.operations_key) = team.access.reader ? ["Read", "Describe"] : ["Write"]
      }
    ]
  ])
  operations_key = "operations"
  readers        = [for name, team in var.teams : name if team.access.reader]
  legacy         = { for name, team in var.teams : name => team.access.legacy if team.access.legacy > 0 }
  by_host        = { for grant in local.grants : grant.host => grant.topic... }
  rows           = csvdecode(file("${path.module}/../../data/shared.csv"))
  partners       = yamldecode(file("${path.root}/../../data/partners.yaml"))
  partner_topics = merge([for name, partner in local.partners.partners : { for t in partner.topics : "${name}:${t}" => { name = name, topic = t } }]...)
}
