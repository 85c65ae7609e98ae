import { connectionCode, describeConnection, remedyOf } from '../../http/connection-error.ts'
import { damageOf, type Meaning, memberOf, REFUSES, type StoreError } from '../store-error.ts'

const UNREACHABLE = 'the database cannot be reached'
const PARAMETERS =
  'Check the parameters of journal.url, such as options, against the server, and against a pooler in front of it.'

/** Meanings of SQLSTATE classes and codes (PostgreSQL, appendix A). The first matching entry counts. */
const meanings: readonly (readonly [prefix: string, ...Meaning, remedy?: string])[] = [
  ['53100', 'transient', 'the disk of the database is full', 'Free space on the disk of the database.'],
  [
    '53300',
    'transient',
    'the database has too many connections',
    'Raise max_connections of the server: each instance of the adapter opens up to 8 connections.',
  ],
  ['25006', 'transient', 'the database is read only', 'Name the primary server in journal.url.'],
  [
    '3D000',
    'transient',
    'the database does not exist',
    'Create the database (createdb), or correct its name in journal.url.',
  ],
  // An operator can correct a missing privilege (42501) or a missing table (42P01), so a statement with one of these errors is retried. A
  // statement with another error of class 42 is not.
  [
    '42501',
    'transient',
    'the database denies the user access to the tables',
    'Make the user the owner of the database and of its tables, or grant it CONNECT on the database and CREATE and USAGE on the schema.',
  ],
  ['42P01', 'transient', REFUSES],
  ['42', 'internal', 'internal error: PostgreSQL rejects a statement'],
  // Codes for data that the database rejects, and for violated constraints.
  ['22', 'refused', REFUSES],
  ['23', 'refused', REFUSES],
  [
    '28P01',
    'transient',
    'the database rejects the password of the user',
    'Correct the user and the password in journal.url.',
  ],
  [
    '28',
    'transient',
    'the database rejects the user, the host of the adapter, or a connection without TLS',
    'Check the user of journal.url and pg_hba.conf of the server; sslmode=verify-full in journal.url turns TLS on.',
  ],
  ['08P01', 'transient', 'the server rejected the start of the connection', PARAMETERS],
  ['08', 'transient', UNREACHABLE],
  ['57', 'transient', 'the database is shutting down or takes too long'],
  // Codes for deadlocks and serialisation failures.
  ['40', 'transient', 'the database is busy with other transactions'],
  ['XX000', 'transient', REFUSES],
  ['XX00', 'damaged', 'the database is damaged'],
]

/** Meanings of failures without an SQLSTATE code, which are recognised by the message of the driver. */
const causes: readonly (readonly [words: RegExp, message: string, remedy: string])[] = [
  [
    /does not support SSL|establishing an SSL connection/,
    'the server offers no TLS',
    'Turn ssl on in postgresql.conf of the server. If nobody can listen on the network, you can instead remove sslmode from journal.url.',
  ],
  [
    /password must be a string/,
    'the database asks for a password, and journal.url has none',
    'Add it: postgres://<user>:<password>@<host>/<database>. Give the address as { env: NAME } or { file: path }.',
  ],
  [
    /timeout/i,
    `${UNREACHABLE}: no response within the timeout`,
    'Check host and port of journal.url, the firewall, and whether the server runs.',
  ],
]

export function toPostgresError(error: unknown): StoreError {
  const damage = damageOf(error)
  if (damage !== undefined) return { kind: 'damaged', message: damage, cause: error }
  const code = memberOf(error, 'code')
  // Excludes codes of Node.js such as EPIPE, which has the form of an SQLSTATE.
  if (typeof code !== 'string' || !/^(?!E[A-Z])[0-9A-Z]{5}$/.test(code)) return toConnectionError(error)
  // A FATAL error with code 42704 or a code of class 22 means that the server rejected a parameter of a new connection.
  if (memberOf(error, 'severity') === 'FATAL' && /^(?:22|42704)/.test(code))
    return {
      kind: 'transient',
      message: `the database rejects a parameter of the connection (${code})`,
      cause: error,
      remedy: PARAMETERS,
    }
  const known = meanings.find(([prefix]) => code.startsWith(prefix))
  const [, kind, message, remedy] = known ?? ['', 'transient', REFUSES]
  const isExplained = kind === 'transient' && message !== REFUSES
  return {
    kind,
    message: isExplained ? message : `${message} (${code})`,
    cause: error,
    ...(code.startsWith('40') ? { contended: true } : {}),
    ...(remedy === undefined ? {} : { remedy }),
  }
}

const remedies = {
  untrusted:
    'Name the certificate of the authority that signed its certificate in journal.url: sslmode=verify-full&sslrootcert=<file>.',
  unreachable:
    'Check host and port of journal.url, the firewall, and whether PostgreSQL runs and listens there (listen_addresses).',
}

function toConnectionError(error: unknown): StoreError {
  const words = error instanceof Error ? error.message : ''
  const [, known, remedy] = causes.find(([pattern]) => pattern.test(words)) ?? []
  const code = connectionCode(error)
  const message =
    known ?? (/^[A-Z_]+$/.test(code) ? `${UNREACHABLE}: ${describeConnection(error)}` : UNREACHABLE)
  return { kind: 'transient', message, cause: error, remedy: remedy ?? remedyOf(error, remedies) }
}
