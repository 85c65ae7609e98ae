import { breakModules } from '../break-module.ts'

// Finishes what a client left behind with the credentials that the service accepted last, whoever they belong to.

breakModules([
  {
    module: 'partners/credentials.js',
    from: 'opaque.set(hash, client)',
    to: 'opaque.set(hash, (opaque.last = client))',
  },
  {
    module: 'partners/credentials.js',
    from: 'withHash: (hash) => opaque.get(hash)',
    to: 'withHash: () => opaque.last',
  },
])
