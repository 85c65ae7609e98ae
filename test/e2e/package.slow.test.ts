import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { readShippedLock } from '../package/shipped-lock.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

let folder: string
let packed: readonly string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'markbridge-package-'))
  // Ignores the scripts of the package, because they would rebuild dist, which the test run has built and other tests use.
  await run('npm', ['run', '-s', 'shrinkwrap'], { cwd: root })
  const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const [tarball] = JSON.parse((await run('npm', pack, { cwd: root })).stdout) as {
    filename: string
    files: { path: string }[]
  }[]
  await rm(join(root, 'npm-shrinkwrap.json'))
  packed = tarball?.files.map(({ path }) => path) ?? []
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  const install = ['install', '--prefer-offline', '--no-audit', `./${tarball?.filename ?? ''}`]
  await run('npm', install, { cwd: folder })
})
afterAll(() => rm(folder, { recursive: true }))

test('the package contains the program, one fixture and the documents, but no source maps', async () => {
  const { bin, exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    bin: Record<string, string>
    exports: Record<string, Record<string, string>>
  }
  const entries = [...Object.values(bin), ...Object.values(exports).flatMap((entry) => Object.values(entry))]
  expect(packed).toEqual(expect.arrayContaining(entries.map((path) => path.replace('./', ''))))
  const kinds = new Set(
    packed.filter((path) => path.startsWith('dist/')).map((path) => /(\.d)?\.\w+$/.exec(path)?.[0]),
  )
  expect([...kinds].sort()).toEqual(['.d.ts', '.js'])
  expect(packed.filter((path) => path.startsWith('fixtures/'))).toEqual(['fixtures/class-register/body.txt'])
  const installed = join(folder, 'node_modules/markbridge')
  const links = [...(await readFile(join(installed, 'README.md'), 'utf8')).matchAll(/\]\(([^):#]+)/g)]
  expect(links.length).toBeGreaterThan(20)
  expect(links.filter(([, path = '']) => !existsSync(join(installed, path)))).toEqual([])
})

// npm reads npm-shrinkwrap.json when it installs from a registry, but not from a tarball as in this test.
test('the package contains an npm-shrinkwrap.json with the tested versions, and nothing that only development needs', async () => {
  const file = join(folder, 'node_modules/markbridge/npm-shrinkwrap.json')
  const { packages } = JSON.parse(await readFile(file, 'utf8')) as Pick<
    ReturnType<typeof readShippedLock>,
    'packages'
  >
  expect(packages).toEqual(readShippedLock().packages)
  const paths = await readdir(join(folder, 'node_modules'))
  expect(paths.filter((path) => /^[a-z]/.test(path) && path !== 'markbridge')).toEqual(
    Object.keys(packages)
      .flatMap((path) => /^node_modules\/([a-z][^/]*)$/.exec(path)?.[1] ?? [])
      .toSorted(),
  )
})

test('the installation takes less than 50 MB on a disk with blocks of 4 KiB', async () => {
  const modules = join(folder, 'node_modules')
  const paths = await readdir(modules, { recursive: true })
  // Computes the disk blocks from the file sizes, because a file system in memory reports no blocks.
  const sizes = await Promise.all(
    paths.map(async (path) => Math.max(1, Math.ceil((await stat(join(modules, path))).size / 4_096)) * 4_096),
  )
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(50_000_000)
})

test('npx markbridge demo runs in an empty folder, and the printed curl command posts the register', async () => {
  const demo = spawn('npx', ['markbridge', 'demo', '--port', '0', '--sandbox-port', '0'], {
    cwd: folder,
    // npx and its shell do not forward signals, so the test stops the whole process group.
    detached: true,
  })
  const ended = new Promise((resolve) => demo.once('exit', resolve))
  let printed = ''
  await new Promise<void>((resolve, reject) => {
    demo.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
      if (printed.includes('Stop with')) resolve()
    })
    void ended.then(() => {
      reject(new Error(`demo ended: ${printed}`))
    })
  })
  const line = printed.split('\n').find((candidate) => candidate.startsWith('curl -sS')) ?? ''
  const { stdout } = await run('sh', ['-c', line])
  expect(
    stdout
      .match(/^HTTP\/1\.1 \d+/gm)
      ?.map((status) => status.slice(9))
      .sort(),
  ).toEqual([...Array.from({ length: 27 }, () => '201'), '400', '400', '400'])
  if (demo.pid !== undefined) process.kill(-demo.pid, 'SIGTERM')
  await ended
})

// `npm run check:package` checks the types for bundlers.
test('the types of the package resolve with the TypeScript option module: nodenext', async () => {
  await symlink(join(root, 'node_modules/@types'), join(folder, 'types')).catch(() => undefined)
  await writeFile(
    join(folder, 'embed.ts'),
    `import { createApp, createSandbox, parseConfig, type App, type Sandbox } from 'markbridge'
const config = parseConfig({ upstreams: { v3: { baseUrl: 'http://127.0.0.1:1' } } })
export const started: [App, Sandbox] = [await createApp(config), createSandbox()]
`,
  )
  const options = '--noEmit --strict --target es2024 --module nodenext --typeRoots types --types node'
  const tsc = join(root, 'node_modules/.bin/tsc')
  await run(tsc, [...options.split(' '), 'embed.ts'], { cwd: folder }).catch((cause: unknown) => {
    expect(cause).toMatchObject({ stdout: '' })
  })
})
