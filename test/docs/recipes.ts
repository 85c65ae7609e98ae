import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll } from 'vitest'

type Command = readonly [program: string, ...args: string[]]

/** An example client in `docs/recipes`, which uses the HTTP and multipart libraries of its language. */
export interface Recipe {
  /** The name of the file in `docs/recipes`. */
  readonly name: string
  readonly language: string
  /** The Debian packages that the recipe needs. */
  readonly packages: string
  /** A command that fails if the language or a library is missing. */
  readonly probe: Command
  readonly compile?: (source: string, folder: string) => Command
  readonly start: (source: string, folder: string) => Command
}

/** Returns the V3 recipe in the same language as a V2 recipe. */
export function onV3(recipe: Recipe): Recipe {
  const { name, packages } = recipe
  const jq = name.endsWith('.sh')
  return {
    ...recipe,
    name: name.replace('post-register', 'v3-register'),
    packages: jq ? `${packages} jq` : packages,
    ...(jq ? { probe: ['sh', '-c', 'curl --version && jq --version'] } : {}),
  }
}

/** The settings that a recipe reads from its environment. */
export interface Settings {
  readonly V3_URL?: string
  readonly V3_KEY?: string
  readonly V3_TOKEN?: string
  readonly V2_URL?: string
  readonly V2_KEY?: string
  readonly V2_TOKEN?: string
  readonly V2_REPEATS?: string
}

/** The exit status and the output of a recipe. */
interface Run {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const jars = '/usr/share/java/jakarta-mail.jar:/usr/share/java/jakarta-activation.jar'

export const recipes: readonly Recipe[] = [
  {
    name: 'post-register.cs',
    language: 'C# (Mono)',
    packages: 'mono-mcs mono-runtime libmono-system-net-http4.0-cil',
    probe: ['sh', '-c', 'mcs --version && mono --version'],
    compile: (source, folder) => ['mcs', '-r:System.Net.Http.dll', `-out:${folder}/Register.exe`, source],
    start: (_source, folder) => ['mono', `${folder}/Register.exe`],
  },
  {
    name: 'post-register.java',
    language: 'Java',
    packages: 'default-jdk-headless libjakarta-mail-java libjakarta-activation-java',
    probe: ['sh', '-c', `javac -version && ls ${jars.replace(':', ' ')}`],
    compile: (source, folder) => ['javac', '-cp', jars, '-d', folder, source],
    // Turns the optimising compiler off, because the recipe runs for only a second.
    start: (source, folder) => ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', `${jars}:${folder}`, source.includes('v3-') ? 'V3Register' : 'PostRegister'], // prettier-ignore
  },
  {
    name: 'post-register.py',
    language: 'Python',
    packages: 'python3 python3-requests',
    probe: ['python3', '-c', 'import requests'],
    start: (source) => ['python3', source],
  },
  {
    name: 'post-register.php',
    language: 'PHP',
    packages: 'php-cli php-curl php-mailparse',
    probe: ['php', '-r', 'exit(extension_loaded("curl") && extension_loaded("mailparse") ? 0 : 1);'],
    start: (source) => ['php', source],
  },
  {
    name: 'post-register.go',
    language: 'Go',
    packages: 'golang-go',
    probe: ['go', 'version'],
    compile: (source, folder) => ['go', 'build', '-o', `${folder}/register`, source],
    start: (_source, folder) => [`${folder}/register`],
  },
  {
    name: 'post-register.rb',
    language: 'Ruby',
    packages: 'ruby ruby-mail',
    probe: ['ruby', '-e', "require 'mail'"],
    start: (source) => ['ruby', source],
  },
  {
    name: 'post-register.sh',
    language: 'POSIX sh',
    packages: 'curl',
    probe: ['curl', '--version'],
    start: (source) => ['sh', source],
  },
]

/** Returns true, and prints a warning, if the language or a library of the recipe is not installed. */
export function isMissing({ name, language, packages, probe: [program, ...args] }: Recipe): boolean {
  if (spawnSync(program, args).status === 0) return false
  console.warn(`SKIPPED: docs/recipes/${name} in ${language} (Debian: apt-get install ${packages}).`)
  return true
}

/** Compiles the recipe before the tests of a file. Returns a function that runs the recipe with these settings and arguments. */
export function useRecipe(
  { name, compile, start }: Recipe,
  missing: boolean,
): (settings: Settings, ...args: string[]) => Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'markbridge-recipe-'))
  const source = fileURLToPath(new URL(`../../docs/recipes/${name}`, import.meta.url))
  beforeAll(async () => {
    if (compile === undefined || missing) return
    const [program, ...args] = compile(source, folder)
    const env = { ...process.env, GOCACHE: join(folder, 'go'), GO111MODULE: 'off', GOTOOLCHAIN: 'local' }
    await promisify(execFile)(program, args, { env })
  })
  afterAll(() => rm(folder, { recursive: true }))
  return (settings, ...args) => {
    const [program, ...own] = start(source, folder)
    // Settings of the machine, such as a proxy, must not affect calls to a service on this machine.
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      LANG: 'C.UTF-8',
      V2_PAUSE: '0',
      V3_PAUSE: '0',
      ...settings,
    }
    const child = spawn(program, [...own, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const out: Buffer[] = []
    const err: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code) => {
        resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() })
      })
    })
  }
}
