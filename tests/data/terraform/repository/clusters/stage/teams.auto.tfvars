teams = {
  "team-20" = {
    topics = ["topic.21", "topic.22", "topic.23", "topic.24", "topic.25"]
    groups = ["group_26"]
  }
  "team-14" = {
    topics = ["topic.15", "topic.16", "topic.17", "topic.18", "topic.19"]
    host = "192.168.1.20"
    access = { reader = true, legacy = 0 }
  }
}
