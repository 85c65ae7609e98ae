import { run } from '../../dist/cli/program.js'

process.exitCode = await run(process.argv, JSON.parse(process.env.ADAPTER_OVERRIDES ?? '{}'))
