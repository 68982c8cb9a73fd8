teams = {
  "team-7" = {
    topics = ["topic.8", "topic.9", "topic.10", "topic.11", "topic.12"]
    groups = ["group_13"]
    host = "192.168.1.20"
  }
  "team-1" = {
    topics = ["topic.2", "topic.3", "topic.4"]
    groups = ["group_5", "group_6"]
    access = { reader = true, legacy = 2 }
  }
}
