import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist/**', 'coverage/**', 'bench/node_modules/**', '**/*.mjs', '*.cjs'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // Index loops over bytes are the point of a codec.
      '@typescript-eslint/prefer-for-of': 'off',
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Error']", message: 'Throw AdapterError (src/errors.ts).' },
        { selector: 'ExportDefaultDeclaration', message: 'Named exports only.' },
      ],
      'no-empty': ['error', { allowEmptyCatch: false }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**'],
    ignores: ['src/cli/**'],
    rules: { 'no-console': 'error' },
  },
  {
    files: ['src/**'],
    rules: {
      // `void promise` handles no rejection: what waits for the promise would wait for ever.
      '@typescript-eslint/no-floating-promises': ['error', { ignoreVoid: false }],
      'no-restricted-globals': [
        'error',
        { name: 'fetch', message: 'undici Pool serves the hot path (docs/decisions/005).' },
      ],
    },
  },
  {
    files: ['src/**'],
    ignores: ['src/config/environment.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        {
          object: 'process',
          property: 'env',
          message: 'The environment is read in src/config/environment.ts only.',
        },
      ],
    },
  },
  {
    files: ['test/**', 'bench/**', '*.config.ts'],
    rules: { 'no-restricted-syntax': 'off', '@typescript-eslint/require-await': 'off' },
  },
)
