import { execFile, spawn, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { version } from '../../src/cli/version.ts'

import { freePort } from '../support/free-port.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

/** A build stage of the Containerfile: a folder in which the steps of the build stage run, with the Node.js of this test. */
interface Stage {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
  workdir: string
}

const words = (json: string): string[] => JSON.parse(json) as string[]

/** Runs the steps of the Containerfile in folders in place of a container. Returns the last build stage and the commands of the image. */
async function build(context: string, folder: string) {
  const text = (await readFile(join(root, 'deploy/Containerfile'), 'utf8')).replaceAll(/\\\n\s*/g, '')
  const steps = [...text.matchAll(/^([A-Z]+) (.*)$/gm)].map(
    ([, name = '', rest = '']) => [name, rest] as const,
  )
  const stages = new Map<string, Stage>()
  let stage: Stage = { folder: '', env: {}, workdir: '/' }
  const commands: Record<string, string[]> = {}
  for (const [name, rest] of steps) {
    switch (name) {
      case 'FROM': {
        const PATH = [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter)
        // npm needs the settings of this machine to reach its registry.
        const env = { ...process.env, PATH }
        stage = { folder: join(folder, String(stages.size)), env, workdir: '/' }
        stages.set(/ AS (\w+)$/.exec(rest)?.[1] ?? 'last', stage)
        break
      }
      case 'ENV':
        for (const [, key = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) stage.env[key] = value
        break
      case 'WORKDIR':
        stage.workdir = rest
        await mkdir(stage.folder + rest, { recursive: true })
        break
      case 'COPY': {
        const [, from, paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? []
        const source = from === undefined ? `${context}/` : (stages.get(from)?.folder ?? '')
        const names = paths.split(' ')
        const target = names.pop() ?? ''
        const below = (path: string): string =>
          join(stage.folder, stage.workdir, target, target.endsWith('./') ? path : '')
        for (const path of names)
          await cp(source + path, below(path.split('/').at(-1) ?? ''), {
            recursive: true,
            verbatimSymlinks: true,
          })
        break
      }
      case 'RUN': {
        // Replaces /var by a folder of the build stage, and leaves out chown, because this machine has no user `node`.
        const own = rest.replaceAll(' /var/', ` ${stage.folder}/var/`).replace(/ && chown node:node \S+/, '')
        await run('sh', ['-c', own], { cwd: stage.folder + stage.workdir, env: stage.env })
        break
      }
      case 'ENTRYPOINT':
      case 'CMD':
        commands[name] = words(rest)
        break
      case 'HEALTHCHECK':
        commands[name] = words(rest.slice(rest.indexOf('[')))
        break
      default:
        expect(['USER', 'VOLUME', 'EXPOSE']).toContain(name)
    }
  }
  return { stage, commands }
}

/** Copies the files that .dockerignore lets a builder see. */
async function sendContext(target: string): Promise<void> {
  const rules = (await readFile(join(root, '.dockerignore'), 'utf8')).split('\n')
  expect(rules).toContain('*')
  for (const rule of rules.filter((line) => line.startsWith('!')))
    await cp(join(root, rule.slice(1)), join(target, rule.slice(1)), { recursive: true })
}

test('the Containerfile builds a program that starts and passes its health check', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'markbridge-image-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const context = join(folder, 'context')
  await sendContext(context)
  const { stage, commands } = await build(context, folder)

  const port = String(await freePort())
  const file = join(folder, 'markbridge.yaml')
  await writeFile(
    file,
    `listen: { port: ${port} }\nupstreams: { v3: { baseUrl: http://127.0.0.1:1 } }\njournal: { url: "sqlite:${stage.folder}/var/lib/markbridge/journal.db" }\n`,
  )
  const own = (name: string): string[] =>
    (commands[name] ?? []).map((word) =>
      word
        .replace('/etc/markbridge/markbridge.yaml', file)
        .replace(/^\/app/, `${stage.folder}/app`)
        .replace('0.0.0.0', '127.0.0.1')
        .replace(':8080', `:${port}`),
    )
  const [program = '', ...args] = [...own('ENTRYPOINT'), ...own('CMD')]
  const options = { cwd: stage.folder + stage.workdir, env: stage.env }
  const server = spawn(program, args, options)
  const ended = new Promise((resolve) => server.once('exit', resolve))
  let printed = ''
  server.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  await new Promise<void>((resolve, reject) => {
    server.stdout.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('adapter ready')) resolve()
    })
    void ended.then(() => {
      reject(new Error(printed))
    })
  })
  const [health = '', ...checks] = own('HEALTHCHECK')
  await run(health, checks, options)
  server.kill('SIGTERM')
  expect(await ended).toBe(0)
}, 600_000)

const succeeds = (program: string, ...args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0

/** Returns podman or buildah, or `undefined` if neither is installed or the base image cannot be pulled. */
async function findBuilder(): Promise<string | undefined> {
  const builder = ['podman', 'buildah'].find((name) => succeeds(name, '--version'))
  const file = await readFile(join(root, 'deploy/Containerfile'), 'utf8')
  const base = /^FROM (\S+)$/m.exec(file)?.[1] ?? ''
  // The base image is pulled only if this machine does not have it yet.
  const hasBase = (name: string): boolean =>
    succeeds(name, 'inspect', '--type', 'image', base) || succeeds(name, 'pull', base)
  if (builder !== undefined && hasBase(builder)) return builder
  const why =
    builder === undefined
      ? 'neither podman nor buildah is installed (Debian: apt-get install buildah)'
      : `${builder} cannot pull ${base}`
  console.warn(`SKIPPED: the build of an image from deploy/Containerfile: ${why}.`)
  return undefined
}

const builder = await findBuilder()

test.skipIf(builder === undefined)(
  'podman or buildah builds an image that runs as an unprivileged user and has a health check',
  async () => {
    const ask = async (...args: readonly string[]): Promise<string> =>
      (await run(builder ?? '', args, { cwd: root, maxBuffer: 1e8 })).stdout.trim()
    const image = `markbridge-test-${process.pid}`
    // If this test runs in a container, a build without --isolation chroot needs rights that the container does not have.
    await ask(
      'build',
      '--isolation',
      'chroot',
      '--format',
      'docker',
      '-t',
      image,
      '-f',
      'deploy/Containerfile',
      '.',
    )
    onTestFinished(async () => {
      await ask('rmi', '--force', image)
    })
    const inspected = await ask('inspect', '--type', 'image', image)
    expect(inspected).toMatch(/"Healthcheck": *\{\s*"Test": *\[[^\]]*"health"/)
    const command = ['node', '/app/dist/cli/main.js', '--version']
    if (builder === 'podman') {
      expect(await ask('run', '--rm', '--entrypoint', '', image, ...command)).toBe(version)
      return
    }
    const container = await ask('from', image)
    onTestFinished(async () => {
      await ask('rm', container)
    })
    expect(await ask('run', '--isolation', 'chroot', container, '--', ...command)).toBe(version)
    const user = ['node', '-p', 'process.getuid() > 0']
    expect(await ask('run', '--isolation', 'chroot', container, '--', ...user)).toBe('true')
  },
  900_000,
)
