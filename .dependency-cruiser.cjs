/** Who may import whom: docs/architecture.md has the table, this file enforces it in `npm run lint`. */

/** unit -> the units and packages its files may import besides their own (node: builtins are governed below). */
const allowed = {
  http: ['errors'],
  odata: ['errors'],
  model: ['odata'],
  v2: ['http', 'odata', 'model', 'errors'],
  v3: ['http', 'odata', 'model', 'errors', 'npm:undici', 'npm:zod'],
  translate: ['v2/record', 'v2/errors', 'v3/record', 'v3/errors', 'odata', 'model', 'errors'],
  journal: ['errors', 'npm:kysely', 'npm:pg'],
  rollout: ['errors', 'journal'],
  proxy: [
    'v2',
    'v3',
    'translate',
    'journal',
    'rollout',
    'compare/live',
    'observability',
    'http',
    'errors',
    'npm:express',
    'npm:http-proxy-middleware',
    'npm:micromatch',
    'npm:zod',
    'npm:jose',
  ],
  sandbox: [
    'odata',
    'model',
    'http',
    'v2',
    'config',
    'errors',
    'npm:express',
    'npm:zod',
    'npm:@faker-js/faker',
  ],
  compare: ['odata', 'v2/record', 'v3/record', 'http', 'errors'],
  console: ['rollout', 'compare', 'journal', 'observability', 'errors', 'npm:express', 'npm:busboy'],
  observability: ['errors', 'npm:pino', 'npm:prom-client'],
  config: ['errors', 'http', 'npm:zod', 'npm:yaml'],
  app: [
    'http',
    'odata',
    'model',
    'v2',
    'v3',
    'translate',
    'journal',
    'rollout',
    'proxy',
    'sandbox',
    'compare',
    'console',
    'observability',
    'config',
    'errors',
    'npm:undici',
  ],
  index: ['app', 'config', 'sandbox', 'v2', 'v3', 'translate', 'odata', 'errors'],
  // check decodes and translates offline, so it calls the same pure steps as the proxy does.
  cli: [
    'app',
    'sandbox',
    'compare',
    'config',
    'journal',
    'errors',
    'v2',
    'v3/record',
    'translate',
    'http',
    'npm:commander',
    'npm:undici',
  ],
}

const pattern = (unit, entry) =>
  entry.startsWith('npm:') ? `node_modules/(@types/)?${entry.slice(4)}/` : `^src/${entry}(/|\\.ts$)`

const layers = Object.entries(allowed).map(([unit, entries]) => ({
  name: `${unit}-imports`,
  comment: `src/${unit} may import only: ${entries.join(', ')} (docs/architecture.md)`,
  severity: 'error',
  from: { path: `^src/${unit}(/|\\.ts$)` },
  to: {
    pathNot: [`^src/${unit}(/|\\.ts$)`, ...entries.map((entry) => pattern(unit, entry))],
    dependencyTypesNot: ['core'],
  },
}))

module.exports = {
  forbidden: [
    ...layers,
    {
      name: 'errors-imports-nothing',
      severity: 'error',
      from: { path: '^src/errors\\.ts$' },
      to: { path: '.' },
    },
    {
      name: 'translate-is-pure',
      comment: 'No I/O, clock or randomness in translate, odata and model.',
      severity: 'error',
      from: { path: '^src/(translate|odata|model)/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'proxy-reads-no-files',
      severity: 'error',
      from: { path: '^src/proxy/' },
      to: { path: '^(node:)?(fs|fs/promises|child_process)$' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-orphans',
      severity: 'error',
      from: { orphan: true, path: '^src/', pathNot: ['^src/index\\.ts$', '^src/cli/main\\.ts$'] },
      to: {},
    },
    { name: 'src-not-to-test', severity: 'error', from: { path: '^src/' }, to: { path: '^(test|bench)/' } },
    {
      name: 'not-to-dev-dep',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev'], pathNot: '@types/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'default'] },
  },
}
