// Rules for the scripts of the interactive page; `make lint` applies them.

const browser = [
  "Blob", "DecompressionStream", "Response", "URL", "atob", "console", "document", "fetch",
  "setTimeout",
];

export default [
  {
    files: ["src/capnets/pages/static/*.js"],
    languageOptions: {
      ecmaVersion: 2024,
      sourceType: "module",
      globals: Object.fromEntries(browser.map((name) => [name, "readonly"])),
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "complexity": ["error", 10],
      "consistent-return": "error",
      "curly": ["error", "multi-line"],
      "default-case-last": "error",
      "eqeqeq": "error",
      "no-cond-assign": "error",
      "no-constant-condition": "error",
      "no-dupe-keys": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-implicit-globals": "error",
      "no-implied-eval": "error",
      "no-redeclare": "error",
      "no-self-assign": "error",
      "no-shadow": "error",
      "no-undef": "error",
      "no-unreachable": "error",
      "no-unused-vars": "error",
      "no-use-before-define": ["error", { functions: false }],
      "no-useless-return": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
];
