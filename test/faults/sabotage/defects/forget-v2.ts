import { breakModules } from '../break-module.ts'

// Keeps what V2 serves in the order of its records, and does not know it again when it comes to V3.

breakModules([
  {
    module: 'writes/relayed-write.js',
    from: 'ids: ids === undefined ? undefined : digestIds(owner, ids)',
    to: 'ids: undefined',
  },
])
