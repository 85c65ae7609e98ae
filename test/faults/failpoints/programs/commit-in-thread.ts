import { DatabaseSync } from 'node:sqlite'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

// Commits three numbers, each in its own transaction, in a thread that starts without the arguments of the process.

if (isMainThread) {
  new Worker(new URL(import.meta.url), { workerData: process.argv[2], execArgv: [] })
} else {
  const database = new DatabaseSync(String(workerData))
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('CREATE TABLE kept (n INTEGER)')
  for (const n of [1, 2, 3]) {
    database.exec('BEGIN IMMEDIATE')
    database.prepare('INSERT INTO kept VALUES (?)').run(n)
    if (n === 2) database.prepare('COMMIT').run()
    else database.exec('COMMIT')
  }
}
