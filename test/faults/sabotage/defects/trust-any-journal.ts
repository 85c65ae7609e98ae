import { breakModules } from '../break-module.ts'

// Takes any journal for its own: neither its identity nor its high-water mark is compared, nor is its file watched.

breakModules([
  { module: 'journal/open-store.js', from: 'if (damage !== undefined)', to: 'if (false)' },
  {
    module: 'journal/sqlite/worker.js',
    from: 'const now = statSync(path, { throwIfNoEntry: false });',
    to: 'return;',
  },
  // The thread that holds the file is started without arguments.
  { module: 'journal/sqlite/store.js', from: 'execArgv: []', to: 'execArgv: process.execArgv' },
])
