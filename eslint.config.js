import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/build/", "**/site/", ".*/"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-implicit-coercion": "error",
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  { files: ["src/**"], languageOptions: { globals: globals.browser } },
  { files: ["tests/**"], languageOptions: { globals: globals.nodeBuiltin } },
];
