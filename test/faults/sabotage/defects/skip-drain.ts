import { breakModules } from '../break-module.ts'

// Acknowledges a step forward at once: writes that are under way on V2 go on while V3 serves newer ones.

breakModules([
  {
    module: 'rollout/live/stage-reader.js',
    from: 'writesV2: writes.v2,',
    to: 'writesV2: 0,',
  },
])
