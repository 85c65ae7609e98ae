import { breakModules } from '../break-module.ts'

// Takes a mark that is read back for the posted one only where it bears the posted time.

breakModules([
  {
    module: 'translate/read-back.js',
    from: "{ content: ['same'], then: 'applied' }",
    to: "{ content: ['same'], time: ['exact'], then: 'applied' }, { content: ['same'], then: 'absent' }",
  },
])
