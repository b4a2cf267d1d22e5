"""open-r1's GRPO, with rewards from the harness's grader under open-r1's names (`accuracy`, `format`, `length`).

    accelerate launch --config_file zero3.yaml open_r1_grpo.py --config open_r1.yaml

Needs open-r1 with its dependencies, and `harness`, in one environment.
"""

import datasets
import open_r1.grpo
import open_r1.rewards
from open_r1.configs import GRPOConfig, GRPOScriptArguments
from trl import ModelConfig, TrlParser

import harness.rewards

# open-r1 looks its functions up by these names when it reads `reward_funcs`.
for name in ("accuracy_reward", "format_reward", "len_reward"):
    setattr(open_r1.rewards, name, getattr(harness.rewards, name))


def questions(arguments):
    """Return the export in open-r1's format: the question as one text, in the column `problem`."""
    rows = datasets.load_dataset("json", data_files=arguments.dataset_name)
    return rows.map(
        lambda row: {"problem": row["prompt"][-1]["content"]}, remove_columns=["prompt", "completion"]
    )


open_r1.grpo.get_dataset = questions

if __name__ == "__main__":
    open_r1.grpo.main(*TrlParser((GRPOScriptArguments, GRPOConfig, ModelConfig)).parse_args_and_config())
