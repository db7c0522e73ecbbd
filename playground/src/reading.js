// What a group means, in words: beside the drawing, and in its place for who cannot see it.

/** What is drawn and told of a group, from its StatefulSet and what that is compiled to. */
export function groupOf({ name, statefulSet, compiled }) {
  const { spec, metadata } = compiled.podGroup;
  const { gang } = spec.schedulingPolicy;
  return {
    name,
    podGroup: metadata.name,
    // As an API server fills them in: they are no part of a PodGroup.
    pods: statefulSet.spec?.replicas ?? 1,
    first: statefulSet.spec?.ordinals?.start ?? 0,
    minCount: gang?.minCount,
    domain: spec.schedulingConstraints?.topology?.[0]?.key,
    together: spec.disruptionMode?.all != null,
    claims: (spec.resourceClaims ?? []).map(({ name, resourceClaimName, resourceClaimTemplateName }) => ({
      name,
      source: resourceClaimName ?? resourceClaimTemplateName ?? "",
      fromTemplate: resourceClaimName == null,
    })),
  };
}

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The facts of a group: a term, and what is so, where code is `{ code }`. */
export function factsOf(group) {
  return [
    { term: "Placed", text: placement(group) },
    {
      term: "Where",
      text: group.domain ? ["all in one domain of the node label ", { code: group.domain }] : ["on any nodes"],
    },
    { term: "Preempted", text: [group.together ? "all together, or not at all" : "pod by pod"] },
    { term: "Shares", text: claimed(group.claims) },
  ];
}

function placement({ minCount, pods }) {
  if (minCount === undefined) return ["each pod on its own, as without a group (basic)"];
  const size = minCount === pods ? "all" : "at least";
  return [`${size} ${plural(minCount, "pod")} at once, or none (gang, `, { code: `minCount: ${minCount}` }, ")"];
}

function claimed(claims) {
  if (claims.length === 0) return ["no claims"];
  return claims.flatMap(({ name, source, fromTemplate }, index) => [
    index > 0 ? "; " : "",
    { code: name },
    fromTemplate ? ", one claim for the group, from the template " : ", the claim ",
    { code: source },
  ]);
}

export const plain = (text) => text.map((part) => part.code ?? part).join("");

/** All facts as one text. */
export function describe(group) {
  return factsOf(group)
    .map(({ term, text }) => `${term}: ${plain(text)}.`)
    .join(" ");
}
