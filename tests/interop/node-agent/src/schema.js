// The part of JSON Schema 2020-12 that the contract uses. A keyword it does not know is refused when the schemas
// are loaded, so that no rule is passed over in silence.

import { isObject, sameValue } from './json.js';

const length = (text) => [...text].length; // code points
const own = (value, name) => Object.hasOwn(value, name);
const isInteger = (value) => Number.isInteger(value);

const TYPES = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  number: (value) => typeof value === 'number',
  integer: isInteger,
};

const ANNOTATIONS = new Set(['$schema', '$id', 'title', '$defs', 'then', 'else']);

const patterns = new Map();
function matches(pattern, text) {
  if (!patterns.has(pattern)) patterns.set(pattern, new RegExp(pattern, 'u'));
  return patterns.get(pattern).test(text);
}

// Each rule: (argument, value, holds, schema) → whether the value obeys. A value of another kind obeys.
const RULES = {
  $ref: (ref, value, holds) => holds(ref, value),
  type: (type, value) => TYPES[type](value),
  const: (due, value) => sameValue(due, value),
  enum: (due, value) => due.some((one) => sameValue(one, value)),
  pattern: (pattern, value) => typeof value !== 'string' || matches(pattern, value),
  minLength: (least, value) => typeof value !== 'string' || length(value) >= least,
  maxLength: (most, value) => typeof value !== 'string' || length(value) <= most,
  minimum: (least, value) => typeof value !== 'number' || value >= least,
  maximum: (most, value) => typeof value !== 'number' || value <= most,
  items: (schema, value, holds) => !Array.isArray(value) || value.every((item) => holds(schema, item)),
  minItems: (least, value) => !Array.isArray(value) || value.length >= least,
  maxItems: (most, value) => !Array.isArray(value) || value.length <= most,
  uniqueItems: (due, value) => !due || !Array.isArray(value)
    || value.every((item, i) => !value.slice(0, i).some((before) => sameValue(before, item))),
  required: (names, value) => !isObject(value) || names.every((name) => own(value, name)),
  properties: (members, value, holds) => !isObject(value)
    || Object.keys(members).every((name) => !own(value, name) || holds(members[name], value[name])),
  additionalProperties: (schema, value, holds, { properties = {} }) => !isObject(value)
    || Object.keys(value).every((name) => own(properties, name) || holds(schema, value[name])),
  propertyNames: (schema, value, holds) => !isObject(value) || Object.keys(value).every((name) => holds(schema, name)),
  minProperties: (least, value) => !isObject(value) || Object.keys(value).length >= least,
  maxProperties: (most, value) => !isObject(value) || Object.keys(value).length <= most,
  dependentRequired: (needs, value) => !isObject(value)
    || Object.keys(needs).every((name) => !own(value, name) || needs[name].every((other) => own(value, other))),
  dependentSchemas: (needs, value, holds) => !isObject(value)
    || Object.keys(needs).every((name) => !own(value, name) || holds(needs[name], value)),
  allOf: (schemas, value, holds) => schemas.every((schema) => holds(schema, value)),
  anyOf: (schemas, value, holds) => schemas.some((schema) => holds(schema, value)),
  not: (schema, value, holds) => !holds(schema, value),
  if: (schema, value, holds, whole) => holds((holds(schema, value) ? whole.then : whole.else) ?? true, value),
};

export class Schemas {
  #files;

  // `files`: name → document; a $ref names a file and, after `#`, a place in it.
  constructor(files) {
    this.#files = files;
    for (const document of files.values()) this.#refuseUnknownKeywords(document);
  }

  holds(schema, value) {
    if (typeof schema === 'boolean') return schema;
    if (typeof schema === 'string') return this.holds(this.#at(schema), value);
    const again = (inner, part) => this.holds(inner, part);
    return Object.keys(schema).every((keyword) => !own(RULES, keyword)
      || RULES[keyword](schema[keyword], value, again, schema));
  }

  #at(ref) {
    const [file, pointer = ''] = ref.split('#');
    const steps = pointer.split('/').slice(1);
    return steps.reduce((place, step) => place[step], this.#files.get(file));
  }

  #refuseUnknownKeywords(schema) {
    if (!isObject(schema)) return;
    for (const [keyword, argument] of Object.entries(schema)) {
      if (!own(RULES, keyword) && !ANNOTATIONS.has(keyword) && !keyword.startsWith('x-')) {
        throw new Error(`the contract uses the keyword ${keyword}, which this agent does not know`);
      }
      if (['properties', '$defs', 'dependentSchemas'].includes(keyword)) {
        Object.values(argument).forEach((inner) => this.#refuseUnknownKeywords(inner));
      } else if (['allOf', 'anyOf'].includes(keyword)) {
        argument.forEach((inner) => this.#refuseUnknownKeywords(inner));
      } else if (!['const', 'enum', 'dependentRequired'].includes(keyword)) {
        this.#refuseUnknownKeywords(argument);
      }
    }
  }
}
