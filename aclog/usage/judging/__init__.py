"""Access logs judged without Spark, in processes: the same counts and the same judge as on Spark."""
