prefix   = "corp"
strict   = true
replicas = 3 # of each topic
