//! The job script.

use clap::Args;

use super::job::JobArgs;
use super::start::LifeArgs;

/// `atom-launch sbatch [options] [-- WORKLOAD…]`
#[derive(Debug, Args)]
pub struct SbatchArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// How each rank lives.
    #[command(flatten)]
    pub life: LifeArgs,
    /// What SLURM is asked for.
    #[command(flatten)]
    pub slurm: SlurmArgs,
    /// Program and arguments of the workload; without it, the job serves until its time is over or `scancel`.
    #[arg(last = true, value_name = "WORKLOAD", allow_hyphen_values = true)]
    pub workload: Vec<String>,
}

/// What the job script asks SLURM for.
#[derive(Debug, Clone, Default, Args)]
pub struct SlurmArgs {
    /// Name of the job [else the model and the counts of workers].
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub job_name: Option<String>,
    /// Nodes to allocate [else as many as the job has ranks].
    #[arg(long, value_name = "N", help_heading = "SLURM", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes_count: Option<u32>,
    /// Partition.
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub partition: Option<String>,
    /// Account.
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub account: Option<String>,
    /// Time limit of the job, as sbatch takes it [else 02:00:00].
    #[arg(long, value_name = "TIME", help_heading = "SLURM")]
    pub time: Option<String>,
    /// Generic resources of a node, such as `gpu:8`, on clusters that want them asked for.
    #[arg(long, value_name = "LIST", help_heading = "SLURM")]
    pub gres: Option<String>,
    /// A further `#SBATCH` option, such as `--qos=high`; may be repeated.
    #[arg(
        long,
        value_name = "OPTION",
        help_heading = "SLURM",
        allow_hyphen_values = true
    )]
    pub sbatch_option: Vec<String>,
    /// Let SLURM start the job again when a node fails; each attempt has a log folder of its own.
    #[arg(long, help_heading = "SLURM")]
    pub requeue: bool,
    /// Run in this image through pyxis and enroot (`srun --container-image`).
    #[arg(
        long,
        value_name = "IMAGE",
        help_heading = "Container",
        conflicts_with = "docker_image"
    )]
    pub container_image: Option<String>,
    /// Run in this image through `docker run`.
    #[arg(long, value_name = "IMAGE", help_heading = "Container")]
    pub docker_image: Option<String>,
    /// A folder the container must see besides the model folder and the logs, `HOST[:INSIDE]`; may be repeated.
    #[arg(long, value_name = "PATH", help_heading = "Container")]
    pub mount: Vec<String>,
}
