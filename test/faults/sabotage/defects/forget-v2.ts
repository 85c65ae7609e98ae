import { breakModules } from '../break-module.ts'

// Keeps what V2 serves in the order of its records, and does not know it again when it comes to V3.

breakModules([
  {
    module: 'writes/relayed-write.js',
    from: '...(await identityOf(owner, upstream, planned)),',
    to: '...(await identityOf(owner, upstream, planned)), ids: undefined,',
  },
])
