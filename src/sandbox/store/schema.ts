/**
 * The tables of the sandbox. Marks are clustered by learner and session, the order in which they are read; ids that
 * follow from the seed are not stored, so a mark of the seeded history takes about 25 bytes. `mark_history` keeps what
 * was replaced: the audit of changes, the stale reads and the way back to the seeded state. `entity_set` has the sets whose
 * entities are made: each is when it is first read.
 */
export const schemaStatements = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE learner (
  no INTEGER PRIMARY KEY, external_id TEXT NOT NULL UNIQUE, admission_day INTEGER NOT NULL, leaving_day INTEGER NOT NULL
);
CREATE TABLE actor (no INTEGER PRIMARY KEY, external_id TEXT NOT NULL UNIQUE);
CREATE TABLE mark (
  learner INTEGER NOT NULL, session INTEGER NOT NULL, copy INTEGER NOT NULL, code INTEGER NOT NULL,
  flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, recorded_on INTEGER NOT NULL, actor INTEGER NOT NULL,
  process TEXT, external_id TEXT, seq INTEGER NOT NULL,
  PRIMARY KEY (learner, session, copy)
) WITHOUT ROWID;
CREATE UNIQUE INDEX mark_external_id ON mark (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX mark_seq ON mark (seq) WHERE seq > 0;
CREATE TABLE mark_history (
  replaced_by INTEGER NOT NULL, learner INTEGER NOT NULL, session INTEGER NOT NULL, copy INTEGER NOT NULL,
  code INTEGER NOT NULL, flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, recorded_on INTEGER NOT NULL,
  actor INTEGER NOT NULL, process TEXT, external_id TEXT, seq INTEGER NOT NULL
);
CREATE INDEX mark_history_of ON mark_history (learner, session, copy, replaced_by);
CREATE TABLE effect (
  seq INTEGER PRIMARY KEY, face TEXT NOT NULL, learner INTEGER NOT NULL, session INTEGER NOT NULL,
  code INTEGER NOT NULL, flags INTEGER NOT NULL, minutes_late INTEGER, comment TEXT, external_id TEXT NOT NULL,
  written_at INTEGER NOT NULL
);
CREATE INDEX effect_written_at ON effect (written_at);
CREATE TABLE entity_set (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE entity (
  entity_set TEXT NOT NULL, learner INTEGER NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, seeded TEXT,
  PRIMARY KEY (entity_set, learner, key)
) WITHOUT ROWID;
`

/** Changes whenever the tables or the seeded content do: a file of another version is refused. */
export const schemaVersion = '3'
