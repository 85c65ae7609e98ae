import { execFile } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { onTestFinished } from 'vitest'

import { findProgram } from '../../support/find-program.ts'

const run = promisify(execFile)

/** A V2 client in another language, with that language's own HTTP and multipart facilities. */
export interface LanguageClient {
  readonly language: string
  /** Debian's packages. */
  readonly packages: string
  readonly programs: readonly string[]
  /** Fails where a part of the language is missing. */
  readonly probe?: readonly [program: string, ...args: string[]]
  readonly compile?: (source: string, folder: string) => readonly [program: string, ...args: string[]]
  readonly start: (source: string, folder: string) => readonly [program: string, ...args: string[]]
  /** File in `test/clients/languages`. */
  readonly file: string
}

export const languageClients: readonly LanguageClient[] = [
  {
    language: 'C# (Mono)',
    packages: 'mono-mcs mono-runtime libmono-system-net-http4.0-cil',
    programs: ['mcs', 'mono'],
    compile: (source, folder) => ['mcs', '-r:System.Net.Http.dll', `-out:${folder}/client.exe`, source],
    start: (_source, folder) => ['mono', `${folder}/client.exe`],
    file: 'client.cs',
  },
  {
    language: 'Java',
    packages: 'default-jdk-headless',
    programs: ['java', 'javac'],
    compile: (source, folder) => ['javac', '-d', folder, source],
    start: (_source, folder) => ['java', '-cp', folder, 'Client'],
    file: 'Client.java',
  },
  {
    language: 'Python',
    packages: 'python3',
    programs: ['python3'],
    start: (source) => ['python3', source],
    file: 'client.py',
  },
  {
    language: 'PHP',
    packages: 'php-cli php-curl',
    programs: ['php'],
    probe: ['php', '-r', 'exit(extension_loaded("curl") ? 0 : 1);'],
    start: (source) => ['php', source],
    file: 'client.php',
  },
  {
    language: 'Go',
    packages: 'golang-go',
    programs: ['go'],
    compile: (source, folder) => ['go', 'build', '-o', `${folder}/client`, source],
    start: (_source, folder) => [`${folder}/client`],
    file: 'client.go',
  },
  {
    language: 'Ruby',
    packages: 'ruby',
    programs: ['ruby'],
    start: (source) => ['ruby', source],
    file: 'client.rb',
  },
]

/** True where the language is not installed, which is said on the terminal. */
export function isMissing({ language, packages, programs, probe }: LanguageClient): boolean {
  const found = programs.every((program) => findProgram(program) !== undefined)
  if (found && (probe === undefined || spawnSync(probe[0], probe.slice(1)).status === 0)) return false
  console.warn(`SKIPPED: the V2 client in ${language} (Debian: apt-get install ${packages}).`)
  return true
}

/** Builds the client, runs it with these arguments and resolves with the lines that it printed. */
export async function runClient(
  { compile, start, file }: LanguageClient,
  args: readonly string[],
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-client-'))
  onTestFinished(() => {
    rmSync(folder, { recursive: true })
  })
  const source = fileURLToPath(new URL(`../languages/${file}`, import.meta.url))
  const execute = async ([program, ...own]: readonly [string, ...string[]]): Promise<string> => {
    const env = { ...process.env, GOCACHE: join(folder, 'go'), GO111MODULE: 'off', GOTOOLCHAIN: 'local' }
    return (await run(program, own, { env, timeout: 90_000, maxBuffer: 16_777_216 })).stdout
  }
  if (compile !== undefined) await execute(compile(source, folder))
  const [program, ...own] = start(source, folder)
  return (await execute([program, ...own, ...args])).split('\n').filter((line) => line !== '')
}
