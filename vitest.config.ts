import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/build.ts'],
    testTimeout: 30_000,
    // Many tests wait for time to pass: more of them than cores keep both busy.
    maxWorkers: 4,
    // The client that test/clients use tells every part that it cannot name a class for.
    env: { SAP_CLOUD_SDK_LOG_LEVEL: 'error' },
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reporter: ['text-summary', 'html', 'json-summary'],
      thresholds: {
        'src/v2/**': { branches: 95 },
        'src/translate/**': { branches: 95 },
      },
    },
  },
})
