import { breakModules } from '../break-module.ts'

// Compares marks that are read back as if the service stored each value exactly as it was posted.

const exact = `{ ...profile, times: 1, timeSeen: true, commentsShown: true, wholeLength: 1e9, cutLength: undefined, nullsKept: true }`

breakModules([
  {
    module: 'writes/echo-learning.js',
    from: 'profile,\n            timeSent,',
    to: `profile: ${exact}, timeSent,`,
  },
])
