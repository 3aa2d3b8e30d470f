// The scripts above only define functions. The page starts here.

const data = JSON.parse(document.getElementById("data").textContent);
const durations = distribution(document.getElementById("distribution"), data.distributions);
operationsTable(document.getElementById("operations-table"), durations.show);
icicle(document.getElementById("icicle"), data.icicle);
ledger(document.getElementById("ledger"), data.ledger);
resources(document.getElementById("resources"), data.resources);
