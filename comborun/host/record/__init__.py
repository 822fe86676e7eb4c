"""What the files of a run say: attempts, holds, the queue, how an attempt is judged."""
