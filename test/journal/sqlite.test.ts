import { runs } from '../support/long-run.ts'
import { describeJournal } from './contract.ts'
import { makeFolder } from './open-sqlite.ts'

describeJournal('SQLite', runs(10, 200), async () => `sqlite:${await makeFolder()}/journal.db`)
